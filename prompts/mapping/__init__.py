"""Finds the columns of a user's file that hold our fields, and proposes the options that read the file."""
