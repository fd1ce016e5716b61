"""Several raters: how far they agree, which outputs to talk about, and what a judge could reach."""
