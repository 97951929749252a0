"""S3's objects: their bytes in files, what is known of them in SQLite. Buckets are moto's."""
