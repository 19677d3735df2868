"""Implementations of the inner rooms' ports on AWS, DynamoDB, SQLite, HTTP and the local machine.

An adapter raises only the errors of `model.errors`, and no errors of libraries.
"""
