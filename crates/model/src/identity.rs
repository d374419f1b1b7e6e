//! The person behind a credential.

use std::sync::Arc;

/// The person behind a credential, and what is known of them. Made once for each key and each checked token, then shared.
///
/// Several credentials can belong to one person: the tokens that different programs hold for one subject, and the keys
/// with one `user` label. What belongs to a person rather than to a program, such as an account at a server, is
/// looked up by `person`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// `jwt:<issuer>|<sub>` for a token, `user:<label>` for a key with a user label, `key:<id>` for another key, and
    /// `local` while no credentials are required. A token without a subject is `jwt:<issuer>||<client_id>`.
    pub person: Arc<str>,
    /// The claim `sub` of a token. The user label of a key, or else the name of the key. None on an open board.
    pub subject: Option<Arc<str>>,
    /// The claim `email` of a token, unless `email_verified` is false.
    pub email: Option<Arc<str>>,
    /// The claim `preferred_username` or `name` of a token. The user label of a key, or else the name of the key.
    pub name: Option<Arc<str>>,
    /// The name of the API key, if the credential is one.
    pub key: Option<Arc<str>>,
    /// The scopes of a token, sorted and separated by blanks; `None` if it has none.
    pub scopes: Option<Arc<str>>,
}

impl Identity {
    /// The person of everything that is done while no credentials are required.
    pub const LOCAL: &'static str = "local";

    /// A person of whom nothing else is known.
    pub fn of(person: Arc<str>) -> Self {
        Self { person, subject: None, email: None, name: None, key: None, scopes: None }
    }

    /// The owner of tokens for which this credential is exchanged. Credentials of one person with different scopes own
    /// different ones, so that none gets what only another one may have.
    pub fn exchange_owner(&self) -> Arc<str> {
        match &self.scopes {
            Some(scopes) => format!("{}|{scopes}", self.person).into(),
            None => self.person.clone(),
        }
    }

    /// The person behind an API key: that of the user label, or else the key itself.
    pub fn of_key(id: &str, name: &Arc<str>, user: Option<&str>) -> Self {
        let label: Option<Arc<str>> = user.map(Arc::from);
        let person = match user {
            Some(user) => format!("user:{user}").into(),
            None => format!("key:{id}").into(),
        };
        let shown = label.unwrap_or_else(|| name.clone());
        let key = Some(name.clone());
        Self {
            person,
            subject: Some(shown.clone()),
            email: None,
            name: Some(shown),
            key,
            scopes: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_one_user_label_belong_to_one_person() {
        let of = |id: &str, name: &str, user| Identity::of_key(id, &name.into(), user);
        let (laptop, phone) = (of("1", "laptop", Some("anna")), of("2", "phone", Some("anna")));
        assert_eq!((&*laptop.person, laptop.subject.as_deref()), ("user:anna", Some("anna")));
        assert_eq!((&laptop.person, &laptop.name), (&phone.person, &phone.name));
        assert_eq!((laptop.key.as_deref(), phone.key.as_deref()), (Some("laptop"), Some("phone")));
        let build = of("3", "build", None);
        assert_eq!((&*build.person, build.subject.as_deref()), ("key:3", Some("build")));
        assert_eq!(build.name.as_deref(), Some("build"));
        assert_eq!(Identity::of("local".into()).subject, None);
    }

    #[test]
    fn tokens_of_one_person_with_different_scopes_own_different_exchanged_ones() {
        let of = |person: &str, scopes: Option<&str>| {
            let scopes = scopes.map(Into::into);
            Identity { scopes, ..Identity::of(person.into()) }.exchange_owner()
        };
        assert_eq!(&*of("jwt:i|anna", None), "jwt:i|anna");
        assert_eq!(&*of("jwt:i|anna", Some("read write")), "jwt:i|anna|read write");
        assert_ne!(of("jwt:i|anna", Some("read")), of("jwt:i|ben", Some("read")));
    }
}
