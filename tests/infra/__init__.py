"""Tests of the stack's template, and of the assets it deploys."""
