"""People's scores that are not part of this project: what is asked about them, and what is measured on them."""
