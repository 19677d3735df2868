"""AWS services but for the tables.

clients           clients, and AWS's errors as ours
sqs               the queues of packs
sqs_dead_letters  the dead-letter queue
sqs_orders        the export queue
sqs_deliveries    the delivery queue
queue_depths      how many messages are on them
s3                files in a bucket
s3_copy           exports in another bucket
event_bus         completed crawls and exports
scheduler         EventBridge Scheduler
secrets           Secrets Manager
glue              the catalogue
emf               metrics as log lines
usage_meter       what is used, at the client's edge
usage_dynamodb    of DynamoDB
usage_requests    of the others
permissions       what IAM asks of a request
recorder          permissions that were needed, for tests
"""
