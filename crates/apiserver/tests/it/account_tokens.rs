//! Tests of the tokens of service accounts: requests for them, their claims, and their use.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::expect;
use kube_informer_apiserver::{Authorization, Server, User};
use serde_json::{Value, json};

use crate::ask::{Reply, builder, get, pod, with};

const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/a";
const PODS: &str = "/api/v1/namespaces/default/pods";
const AUDIENCE: &str = "https://kubernetes.default.svc";

fn account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
}

/// The clock of a test, in seconds since 2027-01-15T08:00:00Z.
#[derive(Clone, Default)]
struct Seconds(Arc<AtomicU64>);

impl Seconds {
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

/// Returns a server with the account `a`, whose handle sends requests as an administrator.
fn server(clock: &Seconds) -> Server {
    let clock = clock.clone();
    let now = move || {
        let passed = Duration::from_secs(clock.0.load(Ordering::Relaxed));
        crate::ask::fixed_time() + passed
    };
    let view = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "view"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "a"}],
    });
    builder()
        .clock(now)
        .authorization(Authorization::Rbac)
        .token("admin", User::new("root").in_group("system:masters"))
        .seed([account("a"), view])
        .build()
        .with_token("admin")
}

async fn request(server: &Server, spec: Value) -> Reply {
    let body = json!({"spec": spec});
    with(server, "POST", &format!("{ACCOUNT}/token"), &body).await
}

async fn token(server: &Server, spec: Value) -> String {
    let reply = request(server, spec).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    let token = reply.json["status"]["token"].as_str().unwrap();
    token.to_owned()
}

fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

async fn review(server: &Server, token: &str, audiences: &[&str]) -> Value {
    let body = json!({"spec": {"token": token, "audiences": audiences}});
    let uri = "/apis/authentication.k8s.io/v1/tokenreviews";
    let reply = with(server, "POST", uri, &body).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    reply.json["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_token_is_a_signed_jwt_of_its_account() {
    let server = server(&Seconds::default());
    let reply = request(&server, json!({"expirationSeconds": 600})).await;
    let status = &reply.json["status"];
    assert_eq!(status["expirationTimestamp"], "2027-01-15T08:10:00Z");
    assert_eq!(reply.json["spec"]["audiences"], json!([AUDIENCE]));
    let token = status["token"].as_str().unwrap();
    let stored = get(&server, ACCOUNT).await.json;
    let claims = claims(token);
    let seconds = 1_800_000_000;
    assert_eq!(claims["exp"], seconds + 600);
    assert_eq!(claims["iat"], seconds);
    assert_eq!(claims["sub"], "system:serviceaccount:default:a");
    let reference = json!({"name": "a", "uid": stored["metadata"]["uid"]});
    assert_eq!(
        claims["kubernetes.io"],
        json!({"namespace": "default", "serviceaccount": reference})
    );
    let review = review(&server, token, &[]).await;
    let id = format!("JTI={}", claims["jti"].as_str().unwrap());
    let user = json!({
        "username": "system:serviceaccount:default:a",
        "uid": stored["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [id]},
    });
    assert_eq!(
        review,
        json!({"authenticated": true, "user": user, "audiences": [AUDIENCE]})
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_has_the_rights_of_its_account() {
    let server = server(&Seconds::default());
    let account = server.with_token(&token(&server, json!({})).await);
    assert_eq!(get(&account, PODS).await.code, 200);
    expect![[r#"403 Forbidden: pods is forbidden: User "system:serviceaccount:default:a" cannot create resource "pods" in API group "" in the namespace "default""#]]
        .assert_eq(&with(&account, "POST", PODS, &pod("p")).await.refusal());
}

#[tokio::test(start_paused = true)]
async fn a_changed_or_foreign_token_is_rejected() {
    let server = server(&Seconds::default());
    let token = token(&server, json!({})).await;
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    let mut forged = claims(&token);
    forged["sub"] = json!("system:serviceaccount:kube-system:admin");
    let forged = URL_SAFE_NO_PAD.encode(forged.to_string());
    let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
    let other = self::server(&Seconds::default());
    let foreign = self::token(&other, json!({})).await;
    for wrong in [
        format!("{header}.{forged}.{signature}"),
        format!("{none}.{payload}."),
        format!("{none}.{payload}.{signature}"),
        format!("{header}.{payload}.{}", &signature[..40]),
        format!("{header}.{payload}."),
        format!("{header}.{payload}"),
        "..".to_owned(),
        foreign,
    ] {
        let reply = get(&server.with_token(&wrong), "/healthz").await;
        assert_eq!(reply.code, 401, "{wrong}");
        assert!(!reply.text.contains(signature), "a token is not repeated");
    }
    assert_eq!(get(&server.with_token(&token), "/healthz").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_token_expires_one_minute_after_its_time() {
    let clock = Seconds::default();
    let server = server(&clock);
    let token = token(&server, json!({"expirationSeconds": 600})).await;
    let account = server.with_token(&token);
    clock.pass(660);
    assert_eq!(get(&account, PODS).await.code, 200, "within the leeway");
    clock.pass(1);
    assert_eq!(get(&account, PODS).await.code, 401);
    let status = review(&server, &token, &[]).await;
    assert!(
        status["error"]
            .to_string()
            .contains("service account token has expired"),
        "{status}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_account_and_the_object_to_which_it_is_bound() {
    let clock = Seconds::default();
    let server = server(&clock);
    let mut bound = pod("p");
    bound["spec"]["serviceAccountName"] = json!("a");
    bound["spec"]["nodeName"] = json!("n");
    server.create(bound).unwrap();
    server
        .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}))
        .unwrap();
    let reference = |kind: &str, name: &str| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}});
    let by_pod = token(&server, reference("Pod", "p")).await;
    let by_secret = token(&server, reference("Secret", "s")).await;
    let plain = token(&server, json!({})).await;
    let uses = async |token: &str| get(&server.with_token(token), PODS).await.code;
    let extra = review(&server, &by_pod, &[]).await["user"]["extra"].clone();
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(
        extra["authentication.kubernetes.io/node-name"],
        json!(["n"])
    );
    assert_eq!([uses(&by_pod).await, uses(&by_secret).await], [200, 200]);
    server.delete("v1", "pods", "default/p").unwrap();
    server.delete("v1", "secrets", "default/s").unwrap();
    assert_eq!([uses(&by_pod).await, uses(&by_secret).await], [401, 401]);
    assert_eq!(uses(&plain).await, 200);
    server.delete("v1", "serviceaccounts", "default/a").unwrap();
    assert_eq!(uses(&plain).await, 401);
    server.create(account("a")).unwrap();
    assert_eq!(uses(&plain).await, 401, "another account of the same name");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_for_its_audiences() {
    let server = server(&Seconds::default());
    let token = token(&server, json!({"audiences": ["vault", "other"]})).await;
    assert_eq!(get(&server.with_token(&token), PODS).await.code, 401);
    let status = review(&server, &token, &["vault", "x"]).await;
    assert_eq!(status["audiences"], json!(["vault"]));
    let status = review(&server, &token, &[]).await;
    assert_eq!(status["authenticated"], Value::Null, "{status}");
    let status = review(&server, "admin", &["vault"]).await;
    assert_eq!(status["authenticated"], Value::Null, "{status}");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_request_for_a_token_is_rejected() {
    let server = server(&Seconds::default());
    let mut trace = String::new();
    for spec in [
        json!({"expirationSeconds": 599}),
        json!({"expirationSeconds": 4_294_967_297_u64}),
        json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}}),
        json!({"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}}),
        json!({"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}),
    ] {
        writeln!(trace, "{}", request(&server, spec).await.refusal()).unwrap();
    }
    server.create(pod("p")).unwrap();
    let foreign = json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}});
    writeln!(trace, "{}", request(&server, foreign).await.refusal()).unwrap();
    expect![[r#"
        422 Invalid: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes
        422 Invalid: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds
        404 NotFound: pods "none" not found
        400 BadRequest: cannot bind token to object of type /v1, Kind=ConfigMap
        400 BadRequest: cannot bind token to object of type apps/v1, Kind=Deployment
        400 BadRequest: cannot bind token for serviceaccount "a" to pod running with different serviceaccount name.
    "#]].assert_eq(&trace);
}

#[tokio::test(start_paused = true)]
async fn an_open_server_issues_tokens_and_ignores_them() {
    let server = builder().seed([account("a")]).build();
    let token = token(&server, json!({})).await;
    assert!(claims(&token)["exp"].as_i64() > Some(1_800_000_000));
    let account = server.with_token(&token);
    assert_eq!(with(&account, "POST", PODS, &pod("p")).await.code, 201);
    let long_after = SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000);
    let later = builder().clock(move || long_after).build();
    assert_eq!(get(&later.with_token(&token), PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn the_published_key_is_that_of_the_tokens() {
    let server = server(&Seconds::default());
    let token = token(&server, json!({})).await;
    let header = URL_SAFE_NO_PAD
        .decode(token.split('.').next().unwrap())
        .unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let reply = get(&server, "/openid/v1/jwks").await;
    assert_eq!(reply.headers["content-type"], "application/jwk-set+json");
    let key = &reply.json["keys"][0];
    assert_eq!((&key["kid"], &key["alg"]), (&header["kid"], &header["alg"]));
    let [x, y] = ["x", "y"].map(|member| {
        let number = key[member].as_str().unwrap();
        URL_SAFE_NO_PAD.decode(number).unwrap()
    });
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let algorithm = &ring::signature::ECDSA_P256_SHA256_FIXED;
    let key = ring::signature::UnparsedPublicKey::new(algorithm, point);
    key.verify(signed.as_bytes(), &signature).unwrap();
    let about = get(&server, "/.well-known/openid-configuration").await.json;
    assert_eq!(about["issuer"], AUDIENCE);
    assert_eq!(about["issuer"], claims(&token)["iss"]);
}
