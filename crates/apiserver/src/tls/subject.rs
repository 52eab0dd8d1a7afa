//! Reads the user from the subject of a client certificate, as kube-apiserver does.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;
use yasna::models::{ObjectIdentifier, TaggedDerValue};
use yasna::tags::TAG_SEQUENCE;
use yasna::{ASN1Result, PCBit};

use crate::access::User;

/// Object identifier of `commonName`, which is the name of the user.
const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];

/// Object identifier of `organizationName`; each value is a group of the user.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// Returns the user that a client certificate names. Returns `None` if the certificate has no common name.
pub(super) fn user_of(certificate: &CertificateDer<'_>) -> Option<Arc<User>> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let attributes = attributes(certificate.subject()).ok()?;
    let values = |wanted: &[u64]| {
        let of_type = attributes
            .iter()
            .filter(|(name, _)| name.components() == wanted);
        let values = of_type.filter_map(|(_, value)| value.as_str());
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    // Go takes the last common name.
    let name = values(&COMMON_NAME).pop().filter(|name| !name.is_empty())?;
    let groups = values(&ORGANIZATION);
    Some(
        groups
            .iter()
            .fold(User::new(&name), |user, group| user.in_group(group))
            .authenticated(),
    )
}

/// Returns the attributes of a subject, given its DER encoding without the outer tag and length.
fn attributes(subject: &[u8]) -> ASN1Result<Vec<(ObjectIdentifier, TaggedDerValue)>> {
    let content = subject.to_vec();
    let whole = TaggedDerValue::from_tag_pc_and_bytes(TAG_SEQUENCE, PCBit::Constructed, content);
    let whole = yasna::construct_der(|writer| writer.write_tagged_der(&whole));
    let sets = yasna::parse_der(&whole, |reader| {
        reader.collect_sequence_of(|reader| {
            reader.collect_set_of(|reader| {
                reader.read_sequence(|reader| {
                    let name = reader.next().read_oid()?;
                    Ok((name, reader.next().read_tagged_der()?))
                })
            })
        })
    })?;
    Ok(sets.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    use super::*;

    fn subject(attributes: impl IntoIterator<Item = (DnType, DnValue)>) -> Option<User> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (name, value) in attributes {
            params.distinguished_name.push(name, value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        user_of(certificate.der()).map(|user| User::clone(&user))
    }

    fn text(value: &str) -> DnValue {
        DnValue::Utf8String(value.to_owned())
    }

    #[test]
    fn the_common_name_is_the_user_and_the_organization_a_group() {
        let user = subject([
            (
                DnType::CountryName,
                DnValue::PrintableString("SE".try_into().unwrap()),
            ),
            (DnType::OrganizationName, text("system:masters")),
            (
                DnType::CommonName,
                DnValue::PrintableString("jane".try_into().unwrap()),
            ),
        ]);
        let expected = User::new("jane")
            .in_group("system:masters")
            .in_group("system:authenticated");
        assert_eq!(user, Some(expected));
    }

    #[test]
    fn a_certificate_without_a_common_name_has_no_user() {
        assert_eq!(subject([(DnType::OrganizationName, text("g"))]), None);
        assert_eq!(subject([(DnType::CommonName, text(""))]), None);
    }
}
