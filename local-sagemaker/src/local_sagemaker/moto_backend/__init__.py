"""moto's services (IAM, CloudFormation, logs...): their state on disk, and what moto lacks."""
