"""Amazon SageMaker on this machine.

One process, bound to loopback, answers every AWS call that the workshop makes.
Training jobs and endpoints are real processes, S3's objects are files; IAM,
CloudFormation and the other services are moto's. Clients are the unmodified sagemaker
SDK, boto3 or AWS CLI, pointed here by `AWS_ENDPOINT_URL`.

This package knows nothing of the lessons and could be a project of its own. No folder imports one
that stands above it here:

    server/         the HTTP server: who answers a request, and what a wrong one gets
    api/            SageMaker's calls that are answered here
    serving/        endpoints and batch transforms: workers that load a model and answer
    jobs/           the life of a training job, from request to model.tar.gz
    cluster/        instances: Linux namespaces, or plain processes where those are refused
    moto_services/  moto's services: their state on disk, and what moto lacks
    s3/             S3's objects
    protocol/       signatures, bodies, validation, errors
    disk/           files that are whole or not there, archives
    image/          what replaces the container image: it runs ON an instance
"""
