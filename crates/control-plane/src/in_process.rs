//! Clients of an embedded server in this process, each with its own `User-Agent`.

use std::task::{Context, Poll};

use http::{
    HeaderValue, Request,
    header::{InvalidHeaderValue, USER_AGENT},
};
use kube_client::Client;
use kube_informer_apiserver::Server;
use tower_service::Service;

/// A `tower` service that sets the `User-Agent` header of each request, and sends the request to the server.
struct Reached {
    server: Server,
    user_agent: HeaderValue,
}

/// Returns a client that sends `User-Agent: <user_agent>` with every request.
///
/// # Errors
/// Returns an error if `user_agent` is no value of a header.
pub(crate) fn client(server: &Server, user_agent: &str) -> Result<Client, InvalidHeaderValue> {
    let reached = Reached {
        server: server.clone(),
        user_agent: HeaderValue::from_str(user_agent)?,
    };
    Ok(Client::new(reached, "default"))
}

impl<B> Service<Request<B>> for Reached
where
    Server: Service<Request<B>>,
{
    type Response = <Server as Service<Request<B>>>::Response;
    type Error = <Server as Service<Request<B>>>::Error;
    type Future = <Server as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.server.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let user_agent = self.user_agent.clone();
        request.headers_mut().insert(USER_AGENT, user_agent);
        self.server.call(request)
    }
}
