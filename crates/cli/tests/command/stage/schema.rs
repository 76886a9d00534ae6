//! Validates printed objects against `docs/reference/schema`.

use std::path::Path;

use serde_json::Value;

/// Asserts that an object conforms to its schema.
pub(crate) fn validate(name: &str, object: &Value) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schema");
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(directory.join(name)).expect(name);
        // The shared parts are inserted into the schema, so that no reference has to be resolved.
        serde_json::from_str(&text.replace("parts.json#", "#")).expect(name)
    };
    let mut schema = read(&format!("{name}.json"));
    schema["$defs"] = read("parts.json")["$defs"].take();
    let validator =
        jsonschema::validator_for(&schema).unwrap_or_else(|cause| panic!("{name}.json: {cause}"));
    let errors: Vec<_> = validator
        .iter_errors(object)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {}\n{object:#}", errors.join("\n"));
}
