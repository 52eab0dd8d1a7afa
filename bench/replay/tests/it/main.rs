//! The server as clients see it, over TCP.

mod binary;
mod kube_client;
mod served;
