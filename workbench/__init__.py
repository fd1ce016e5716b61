"""The workbench: pages of this machine on which a person looks at runs, changes a judge and labels."""
