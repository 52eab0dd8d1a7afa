//! Issues and verifies the tokens of service accounts: JSON Web Tokens, signed with a key of the server.
//!
//! Guarantees:
//! - The claims, the checks and the errors are those of `pkg/serviceaccount` in Kubernetes.
//! - The key (ECDSA with P-256, ES256) comes from the random numbers of the operating system, not from the seed of the
//!   server. It is made with the first token, and is never stored: a restarted server rejects earlier tokens.
//! - A token is checked at each request: a deleted account or bound object makes it invalid.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::impersonation::NODE_NAME;
use super::user::{User, account_name};
use crate::clock::Clock;
use crate::quote::Quoted;

/// The issuer of the tokens, and the audience of the server.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// Difference of clocks that is tolerated (`DefaultLeeway` of go-jose).
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

/// What precedes a point of P-256 in a public key in DER, from which the id of the key is computed.
const P256_DER: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Issues tokens, and verifies them. Clones have the same key.
#[derive(Clone, Default)]
pub(crate) struct Issuer {
    key: Arc<OnceLock<Key>>,
}

struct Key {
    pair: EcdsaKeyPair,
    id: String,
}

/// An object that a token names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// What a new token contains.
pub(crate) struct Claims {
    pub(crate) namespace: String,
    pub(crate) account: Reference,
    pub(crate) pod: Option<Reference>,
    pub(crate) secret: Option<Reference>,
    pub(crate) node: Option<Reference>,
    pub(crate) audiences: Vec<String>,
    /// Unique id of the token.
    pub(crate) id: String,
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
    /// The time from which a use is reported in Kubernetes, although the token is still valid.
    pub(crate) warn_after: Option<Timestamp>,
}

/// The state of an object that a token names.
pub(crate) struct Found {
    pub(crate) uid: String,
    pub(crate) deleted: Option<Timestamp>,
}

/// The clock, and the objects that tokens name.
pub(crate) struct Referents<'a> {
    pub(crate) clock: &'a Clock,
    /// Returns the object of a resource of the core group, by namespace and name.
    pub(crate) find: &'a dyn Fn(&str, &str, &str) -> Option<Found>,
}

/// A verified token.
pub(super) struct Verified {
    pub(super) user: User,
    /// Those of the requested audiences that the token is for.
    pub(super) audiences: Vec<String>,
}

// === impl Issuer ===

impl Issuer {
    /// Returns a signed token.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system has no random numbers.
    pub(crate) fn issue(&self, claims: &Claims) -> Result<String, String> {
        let key = self.key()?;
        let header = json!({"alg": "ES256", "kid": key.id});
        let [header, payload] =
            [header, claims.to_json()].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let text = format!("{header}.{payload}");
        let signature = key.pair.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signature.map_err(|_| "failed to sign".to_owned())?;
        let signature = URL_SAFE_NO_PAD.encode(signature);
        Ok(format!("{text}.{signature}"))
    }

    /// Returns the public key of the tokens as a JSON Web Key Set.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system has no random numbers.
    pub(crate) fn keys(&self) -> Result<Value, String> {
        let key = self.key()?;
        // A point without compression: 4, and two numbers of 32 bytes.
        let point = key.pair.public_key().as_ref();
        let number = |at: usize| URL_SAFE_NO_PAD.encode(&point[at..at + 32]);
        let key = json!({
            "use": "sig",
            "kty": "EC",
            "kid": key.id,
            "crv": "P-256",
            "alg": "ES256",
            "x": number(1),
            "y": number(33),
        });
        Ok(json!({"keys": [key]}))
    }

    /// Verifies a token for one of the `audiences`.
    ///
    /// Returns `None` if the token is none of this kind.
    ///
    /// # Errors
    ///
    /// Returns Kubernetes' text of what is wrong with the token.
    pub(super) fn verify(
        &self,
        token: &[u8],
        audiences: &[String],
        referents: &Referents<'_>,
    ) -> Option<Result<Verified, String>> {
        let token = std::str::from_utf8(token).ok()?;
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let parsed = |text| serde_json::from_slice::<Value>(&decoded(text)?).ok();
        let payload = parsed(payload)?;
        if payload["iss"] != ISSUER {
            return None;
        }
        let header = parsed(header)?;
        let Some(key) = self.key.get().filter(|key| header["kid"] == *key.id) else {
            return Some(Err("invalid signature, no keys found".to_owned()));
        };
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key());
        let is_signed = decoded(signature)
            .is_some_and(|signature| public.verify(signed.as_bytes(), &signature).is_ok());
        if header["alg"] != "ES256" || !is_signed {
            let why = "go-jose/go-jose: error in cryptographic primitive";
            return Some(Err(why.to_owned()));
        }
        Some(check(&payload, audiences, referents))
    }

    fn key(&self) -> Result<&Key, String> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let made = Key::make().map_err(|()| "failed to make a key".to_owned())?;
        Ok(self.key.get_or_init(|| made))
    }
}

// === impl Key ===

impl Key {
    fn make() -> Result<Key, ()> {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| ())?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
        let pair = pair.map_err(|_| ())?;
        let der = [P256_DER, pair.public_key().as_ref()].concat();
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(der));
        Ok(Key { pair, id })
    }
}

// === impl Claims ===

impl Claims {
    fn to_json(&self) -> Value {
        let reference = |it: &Reference| json!({"name": it.name, "uid": it.uid});
        let mut own = json!({"namespace": self.namespace});
        for (name, bound) in [
            ("node", &self.node),
            ("pod", &self.pod),
            ("secret", &self.secret),
        ] {
            if let Some(bound) = bound {
                own[name] = reference(bound);
            }
        }
        own["serviceaccount"] = reference(&self.account);
        if let Some(after) = self.warn_after {
            own["warnafter"] = json!(after.as_second());
        }
        json!({
            "aud": self.audiences,
            "exp": self.expires.as_second(),
            "iat": self.issued.as_second(),
            "iss": ISSUER,
            "jti": self.id,
            "kubernetes.io": own,
            "nbf": self.issued.as_second(),
            "sub": account_name(&self.namespace, &self.account.name),
        })
    }
}

// === impl Reference ===

impl Reference {
    fn parse(value: &Value) -> Option<Reference> {
        let text = |member: &str| value[member].as_str().unwrap_or_default().to_owned();
        value.is_object().then(|| Reference {
            name: text("name"),
            uid: text("uid"),
        })
    }
}

/// Returns the document that describes the issuer of the tokens. Its URL is that of the issuer, not of the server.
pub(crate) fn configuration() -> Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// Checks the claims of a token with a valid signature.
fn check(
    payload: &Value,
    audiences: &[String],
    referents: &Referents<'_>,
) -> Result<Verified, String> {
    let own = payload["aud"].as_array().into_iter().flatten();
    let own: Vec<String> = own.filter_map(Value::as_str).map(str::to_owned).collect();
    let common = own.iter().filter(|audience| audiences.contains(audience));
    let common: Vec<String> = common.cloned().collect();
    if common.is_empty() {
        let [own, wanted] = [&own, audiences].map(super::rbac::quoted_list);
        return Err(format!(
            "token audiences {own} is invalid for the target audiences {wanted}"
        ));
    }
    let time = |claim: &str| payload[claim].as_i64().unwrap_or_default();
    let (now, leeway) = (referents.clock.now().as_second(), LEEWAY.as_secs());
    if now + leeway < time("nbf") {
        return Err("service account token is not valid yet".to_owned());
    }
    if now - leeway > time("exp") {
        return Err("service account token has expired".to_owned());
    }
    Ok(Verified {
        user: user(payload, referents)?,
        audiences: common,
    })
}

/// Checks that the account and the bound object of a token exist, and returns the token's user.
fn user(payload: &Value, referents: &Referents<'_>) -> Result<User, String> {
    let own = &payload["kubernetes.io"];
    let namespace = own["namespace"].as_str().unwrap_or_default();
    let bound = |member: &str| Reference::parse(&own[member]);
    let account = bound("serviceaccount").unwrap_or_default();
    let name = &account.name;
    let gone = format!("service account {namespace}/{name} has been deleted");
    let Some(found) = (referents.find)("serviceaccounts", namespace, name) else {
        return Err(format!("serviceaccounts {} not found", Quoted(name)));
    };
    if found.uid != account.uid {
        let (found, claimed) = (found.uid, account.uid);
        return Err(format!(
            "service account UID ({found}) does not match claim ({claimed})"
        ));
    }
    if is_gone(&found, referents.clock.now()) {
        return Err(gone);
    }
    let (pod, node, secret) = (bound("pod"), bound("node"), bound("secret"));
    check_bound(secret.as_ref(), ("Secret", "secrets"), namespace, referents)?;
    check_bound(pod.as_ref(), ("Pod", "pods"), namespace, referents)?;
    if pod.is_none() {
        check_bound(node.as_ref(), ("Node", "nodes"), "", referents)?;
    }
    let mut user = User::service_account(namespace, name);
    user.uid = account.uid;
    let id = payload["jti"].as_str().unwrap_or_default();
    let mut add = |key: &str, value: String| drop(user.extra.insert(key.to_owned(), vec![value]));
    add(
        "authentication.kubernetes.io/credential-id",
        format!("JTI={id}"),
    );
    if let Some(pod) = pod {
        add("authentication.kubernetes.io/pod-name", pod.name);
        add("authentication.kubernetes.io/pod-uid", pod.uid);
    }
    if let Some(node) = node {
        add(NODE_NAME, node.name);
        add("authentication.kubernetes.io/node-uid", node.uid);
    }
    Ok(user)
}

/// Checks that an object to which a token is bound exists.
fn check_bound(
    bound: Option<&Reference>,
    (kind, resource): (&str, &str),
    namespace: &str,
    referents: &Referents<'_>,
) -> Result<(), String> {
    let Some(bound) = bound else {
        return Ok(());
    };
    let found = (referents.find)(resource, namespace, &bound.name);
    match found.filter(|found| !is_gone(found, referents.clock.now())) {
        None => Err("service account token has been invalidated".to_owned()),
        Some(found) if found.uid != bound.uid => Err(format!(
            "{kind} UID ({}) does not match service account {} ref claim ({})",
            found.uid,
            kind.to_lowercase(),
            bound.uid
        )),
        Some(_) => Ok(()),
    }
}

fn is_gone(found: &Found, now: Timestamp) -> bool {
    found.deleted.is_some_and(|deleted| deleted < now - LEEWAY)
}
