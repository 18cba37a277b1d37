//! The operations, as an OpenAPI document.

use serde_json::{Map, Value, json};

use super::operations::{OPERATIONS, Operation};

/// The document, as OpenAPI 3.1.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let at = paths.entry(operation.path).or_insert_with(|| json!({}));
        at[operation.method.to_lowercase()] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "greenroom",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A running greenroom: asking it, changing it",
            "description": "Changes are POST requests. Times are in milliseconds.",
        },
        "paths": paths,
        "security": [{}, { "token": [] }],
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`admin.token` of the configuration, or `admin.read_token` for requests that change nothing",
                },
            },
            "schemas": { "Error": error() },
        },
    })
}

fn error() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["what", "where", "next"],
                "properties": {
                    "what": text("the problem"),
                    "where": text("where"),
                    "next": text("the next step"),
                    "details": { "description": "details that do not fit into one line" },
                },
            },
        },
    })
}

fn described(operation: &Operation) -> Value {
    let in_path =
        operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let in_query = operation.parameters().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": "query",
            "required": parameter.required,
            "description": parameter.about,
            "schema": { "type": "string" },
        })
    });
    let is_json = operation.answer == "application/json";
    let schema = if is_json { json!({ "type": "object" }) } else { json!({ "type": "string" }) };
    let refused = json!({ "$ref": "#/components/schemas/Error" });
    let mut described = json!({
        "summary": operation.about,
        "parameters": in_path.chain(in_query).collect::<Value>(),
        "responses": {
            "200": {
                "description": operation.about,
                "content": { operation.answer: { "schema": schema } },
            },
            "default": {
                "description": "the reason for the refusal",
                "content": { "application/json": { "schema": refused } },
            },
        },
    });
    if let Some(body) = operation.body {
        let content = json!({ "application/json": { "schema": { "type": "object" } } });
        described["requestBody"] = json!({ "description": body, "content": content });
    }
    if operation.open {
        described["security"] = json!([]);
    }
    described
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::admin::routes;

    /// `/a/{name}/pause` is answered by the route `/a/{name}/{order}`.
    fn answers(route: &str, path: &str) -> bool {
        let (route, path): (Vec<_>, Vec<_>) =
            (route.split('/').collect(), path.split('/').collect());
        let same = |(route, path): (&&str, &&str)| route == path || route.starts_with('{');
        route.len() == path.len() && route.iter().zip(&path).all(same)
    }

    #[test]
    fn o09_the_document_has_each_route_and_no_other() {
        let routes = routes::routes();
        let document = document();
        let mut met = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                let of_method =
                    routes.told().iter().filter(|(of, _)| of.as_str().eq_ignore_ascii_case(method));
                // The path with the most literal parts answers, as in the router.
                let found = of_method
                    .filter(|(_, route)| answers(route, path))
                    .min_by_key(|(_, route)| route.matches('{').count());
                let (method, route) =
                    found.unwrap_or_else(|| panic!("no route answers {method} {path}"));
                met.insert((method.to_string(), *route));
            }
        }
        for (method, route) in routes.told() {
            assert!(
                met.contains(&(method.to_string(), *route)),
                "not documented: {method} {route}"
            );
        }
    }

    #[test]
    fn o09_each_parameter_of_a_path_is_declared() {
        for operation in OPERATIONS {
            let declared = described(operation)["parameters"].as_array().unwrap().len();
            assert_eq!(
                declared,
                operation.path.matches('{').count() + operation.parameters().count()
            );
        }
    }
}
