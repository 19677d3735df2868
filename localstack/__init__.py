"""Running the whole stack on one machine, with no account and no Docker.

The modules, from the outside in:

- `stack`      what a command or a test asks for: the stack, up (emulator + deployment)
- `cdk`        the CDK app against whatever `AWS_ENDPOINT_URL` names, or AWS
- `assembly`   synthesized stacks, kept by the content they were made from
- `emulator`   MiniStack as a child process: start, find, stop
- `lending`    one emulator for several commands: the last one stops it
- `launch`     its process; `lost` the mark that a killed one leaves
- `guard`      what runs inside that process: it never outlives who it belongs to
- `processes`  processes told apart by more than their number
- `layout`     where things are in this checkout, and the environment that clients need

Everything else in the project talks to whatever `AWS_ENDPOINT_URL` names.
"""
