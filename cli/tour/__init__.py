"""The tour of `enginehouse demo`: steps that do a thing on a running fleet and print the evidence."""
