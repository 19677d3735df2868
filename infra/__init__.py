"""The AWS stack, one construct per concern.

What goes in: `config` (what may be set) · `runtime` (what functions run on) · `asset` (their
code) · `retention` (prefixes of the bucket, and for how long each is kept).
What CDK needs: `node` (the Node it runs on) · `findings` (of rule packs, meant to be so).
The stack: `frontier` (queues) · `storage` (tables, bucket) · `program` (a function with role and
logs) · `worker` · `exporter` · `api` · `monitoring` · `stack` (all of it).
"""
