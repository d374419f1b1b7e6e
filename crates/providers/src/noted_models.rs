//! What a backend said about some of its models.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Maximum number of models; the oldest one is forgotten first, and its backend says it again.
const MAX_MODELS: usize = 64;

/// The models of which a backend said one thing.
#[derive(Debug, Default)]
pub(crate) struct NotedModels(Mutex<VecDeque<String>>);

impl NotedModels {
    pub(crate) fn contains(&self, model: &str) -> bool {
        self.0.lock().iter().any(|known| known == model)
    }

    /// Adds a model; `false` if it is there already.
    pub(crate) fn insert(&self, model: &str) -> bool {
        let mut models = self.0.lock();
        if models.iter().any(|known| known == model) {
            return false;
        }
        if models.len() >= MAX_MODELS {
            models.pop_front();
        }
        models.push_back(model.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_noted_once_and_the_oldest_is_forgotten() {
        let noted = NotedModels::default();
        assert!(noted.insert("a") && !noted.insert("a") && noted.contains("a"));
        for number in 0..MAX_MODELS {
            assert!(noted.insert(&number.to_string()));
        }
        assert!(!noted.contains("a") && noted.contains("0"));
    }
}
