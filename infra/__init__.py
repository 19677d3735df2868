"""The AWS stack as CDK constructs, one per concern.

Inputs: `config` (settings), `runtime` (of the functions), `asset` (their code), `retention` (of the
bucket's prefixes). For CDK: `node` (the Node it runs on), `findings` (accepted findings of rule
packs). The stack: `frontier` (queues), `storage` (tables, bucket), `program` (a function with role
and logs), `worker` (also with a browser), `exporter`, `api`, `console`, `monitoring`, `stack` (the
whole).
"""
