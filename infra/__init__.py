"""The AWS stack, one construct per concern.

`config` (what may be set) · `node` (the Node that CDK runs on) · `asset` (the code of the
functions) · `frontier` (queues) · `storage` (tables, bucket) · `program` (a function with its role
and log group) · `worker` · `exporter` · `api` · `monitoring` · `stack` (all of it).
"""
