"""Runs the whole stack on one machine, without an AWS account or Docker.

- `stack`      starts, shares and stops the stack (emulator + deployment) for commands and tests
- `cdk`        runs the CDK app against the endpoint `AWS_ENDPOINT_URL`, or AWS
- `assembly`   caches synthesized stacks by their inputs
- `emulator`   starts, finds and stops MiniStack as a child process
- `guard`      runs inside that process, and ends it when its owner ends
- `processes`  identifies processes by id and start time, and runs commands with a time limit
- `layout`     paths in this checkout, and the environment of clients

All other code uses the endpoint in `AWS_ENDPOINT_URL`.
"""
