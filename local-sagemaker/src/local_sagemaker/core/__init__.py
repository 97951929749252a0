"""What training and hosting share: AWS client, records, S3 input, failures."""
