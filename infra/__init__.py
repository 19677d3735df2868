"""The AWS stack, one construct per concern.

Inputs: `config` (settings) · `runtime` (the functions' runtime) · `asset` (their code) ·
`retention` (retention of the bucket's prefixes). For CDK: `node` (the Node it runs on) · `findings`
(accepted findings of rule packs). The stack: `frontier` (queues) · `storage` (tables, bucket) ·
`program` (a function with role and logs) · `worker` · `exporter` · `api` · `monitoring` · `stack`
(the whole).
"""
