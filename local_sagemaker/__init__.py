"""Amazon SageMaker on this machine.

One process, bound to loopback, answers every AWS call that the workshop makes.
Training jobs are real processes; S3, IAM, CloudFormation and the other services are
moto's. Clients are the unmodified sagemaker SDK, boto3 or AWS CLI, pointed here by
`AWS_ENDPOINT_URL`.

This package knows nothing of the lessons and could be a project of its own.

    server/   the HTTP face: dispatch, validation, errors, state on disk
    api/      SageMaker's calls that are answered here
    jobs/     the life of a training job, from request to model.tar.gz
    cluster/  instances: Linux namespaces, or plain processes where those are refused
    image/    what stands in for the container image: it runs ON an instance
"""
