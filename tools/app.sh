#!/bin/sh
# Runs the CDK app with this checkout's Python, whether .venv is active or not.
python=.venv/bin/python
if [ ! -x "$python" ]; then
    echo "There is no $python in $PWD: run \`make setup\`, then this command again." >&2
    exit 1
fi
exec "$python" app.py
