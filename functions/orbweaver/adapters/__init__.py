"""Technologies: AWS, DynamoDB, SQLite, the web, this machine. Each implements ports of inner rooms.

An adapter raises the errors of `model.errors` alone; nothing above it sees a technology's own.
"""
