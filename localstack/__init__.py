"""Runs the whole stack on one machine, without an AWS account or Docker.

- `stack`      starts and stops the stack (emulator + deployment) for a command or a test
- `cdk`        runs the CDK app against `AWS_ENDPOINT_URL`, or AWS
- `assembly`   synthesized stacks, cached by their inputs
- `emulator`   MiniStack as a child process: start, find, stop
- `lending`    one emulator for several commands; the last one stops it
- `launch`     its process; `lost` the mark of a killed emulator
- `guard`      runs inside that process, so that it never outlives its owner
- `processes`  processes identified by more than their id
- `layout`     paths in this checkout, and the environment of clients

All other code uses the endpoint in `AWS_ENDPOINT_URL`.
"""
