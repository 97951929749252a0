"""What stands in for the container image: everything here runs ON an instance.

AWS's own `sagemaker-training` toolkit does the work, as it does in AWS's images. This
package adds what the images add to it: the framework module that chooses the launcher,
TF_CONFIG, the parameter server process, and a way to start a process on another instance
(the images use sshd). Only `ps_server` and the `smdistributed` stand-in, which are
programs of their own, import a framework.
"""
