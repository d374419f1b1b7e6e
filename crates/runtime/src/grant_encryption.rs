//! Encrypts the stored grants in the background when the configuration has a key for them.

use switchboard_store::Store;

/// Encrypts what is in clear text or has an earlier key. What cannot be decrypted stays, and the log says so.
pub(crate) async fn encrypt_grants(store: Store) {
    match store.reencrypt_grants().await {
        Ok(done) => {
            if done.changed > 0 {
                tracing::info!(
                    count = done.changed,
                    "stored sign-ins were encrypted with the current key"
                );
            }
            if done.locked > 0 {
                tracing::warn!(
                    count = done.locked,
                    "stored sign-ins cannot be decrypted; list their key in `security.previous_store_keys`"
                );
            }
        }
        Err(error) => {
            let error = error.in_full();
            tracing::warn!(
                error,
                "stored sign-ins could not be encrypted; the next start tries again"
            );
        }
    }
}
