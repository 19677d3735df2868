"""IAM check: used permissions against granted ones."""
