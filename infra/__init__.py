"""The AWS stack as CDK constructs, one module for each.

Inputs: `config` (the settings of a deployment), `keys` (types of its settings), `runtime` (of the
functions), `asset` (the functions' code), `retention` (of the bucket's prefixes). For CDK: `node`
(finds the Node that runs CDK), `findings` (accepted findings of rule packs). The stack: `frontier`
(queues), `storage` (tables, bucket), `program` (a function with role and logs), `worker` (crawls;
also with a browser), `exporter`, `api`, `console`, `monitoring`, `stack` (all of them together).
"""
