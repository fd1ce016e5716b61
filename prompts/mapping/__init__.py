"""Finds out which column of somebody's file is which of our fields, and proposes the options that read it."""
