//! Validates values against the alternatives of a schema: `anyOf`, `oneOf`, `allOf` and `not`.
//!
//! As in Kubernetes, an update also reports errors of unchanged values below an alternative.

use serde_json::Value;

use super::Validator;
use crate::quote::Quoted;
use crate::schema::Schema;
use crate::schema::outcome::Outcome;

impl Validator<'_, '_> {
    pub(super) fn check_alternatives(&mut self, schema: &Schema, value: &Value) -> Outcome {
        let mut outcome = Outcome::default();
        if !schema.any_of.is_empty() {
            self.check_any_of(&schema.any_of, value, &mut outcome);
        }
        if !schema.one_of.is_empty() {
            self.check_one_of(&schema.one_of, value, &mut outcome);
        }
        if !schema.all_of.is_empty() {
            self.check_all_of(&schema.all_of, value, &mut outcome);
        }
        if let Some(not) = &schema.not
            && self.check(not, value, None).is_valid()
        {
            self.fail("must not validate the schema (not)", &mut outcome);
        }
        outcome.matches += 1;
        outcome
    }

    /// Adds an error about the whole value. `rule` continues the value's path.
    fn fail(&self, rule: &str, outcome: &mut Outcome) {
        let text = format!("{} {rule}", Quoted(&self.path));
        outcome.general(self.place(), text);
    }

    fn check_any_of(&mut self, alternatives: &[Schema], value: &Value, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for alternative in alternatives {
            let found = self.check(alternative, value, None);
            if found.is_valid() {
                outcome.merge(found);
                return;
            }
            if best
                .as_ref()
                .is_none_or(|best| found.matches > best.matches)
            {
                best = Some(found);
            }
        }
        self.fail("must validate at least one schema (anyOf)", outcome);
        outcome.merge(best.unwrap_or_default());
    }

    fn check_one_of(&mut self, alternatives: &[Schema], value: &Value, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        let mut first: Option<Outcome> = None;
        let mut valid = 0;
        for alternative in alternatives {
            let found = self.check(alternative, value, None);
            if found.is_valid() {
                valid += 1;
                best = None;
                first = first.or(Some(found));
            } else if valid == 0
                && best
                    .as_ref()
                    .is_none_or(|best| found.matches > best.matches)
            {
                best = Some(found);
            }
        }
        if valid == 1 {
            outcome.merge(first.unwrap_or_default());
            return;
        }
        let why = match valid {
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        let rule = format!("must validate one and only one schema (oneOf). {why}");
        self.fail(&rule, outcome);
        outcome.merge(best.unwrap_or_default());
    }

    fn check_all_of(&mut self, parts: &[Schema], value: &Value, outcome: &mut Outcome) {
        let mut valid = 0;
        for part in parts {
            let found = self.check(part, value, None);
            valid += usize::from(found.is_valid());
            outcome.merge(found);
        }
        if valid < parts.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            let rule = format!("must validate all the schemas (allOf){none}");
            self.fail(&rule, outcome);
        }
    }
}
