"""A checklist is worded anew for the judge that is to answer it: by its source's verdicts, question by question."""
