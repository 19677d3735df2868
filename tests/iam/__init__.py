"""Roles as a closed loop: what functions need of AWS, beside what they are granted."""
