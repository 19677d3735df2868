"""Adapters for AWS services, except DynamoDB.

clients           clients, and AWS errors mapped to port errors
sqs               queues of packs (messages with up to 25 URLs), exports and deliveries
sqs_dead_letters  dead-letter queue
queue_depths      approximate queue lengths
s3                files in a bucket
s3_copy           copies of exports in another bucket
event_bus         events for completed crawls and exports
scheduler         EventBridge Scheduler
secrets           Secrets Manager
glue              Glue catalogue
emf               metrics as log lines
usage_meter       AWS units used, counted at the clients
usage_requests    billed units of requests
permissions       IAM permissions that a request needs, and a log of them for tests
"""
