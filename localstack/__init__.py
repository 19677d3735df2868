"""Runs the whole stack on one machine, without an AWS account or Docker.

- `stack`      starts, shares and stops the stack (emulator + deployment) for commands and tests
- `cdk`        runs the CDK app against `AWS_ENDPOINT_URL`, or AWS
- `assembly`   synthesized stacks, cached by their inputs
- `emulator`   MiniStack as a child process: start, find, stop
- `launch`     its process
- `guard`      runs inside that process, so that it never outlives its owner
- `processes`  processes identified by more than their id, and commands with a time limit
- `layout`     paths in this checkout, and the environment of clients

All other code uses the endpoint in `AWS_ENDPOINT_URL`.
"""
