"""The papers' tables, one command each, with the embedded model or any provider's model. See README.md here."""
