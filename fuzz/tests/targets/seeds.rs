//! What several targets begin with.

/// Events in the JSON format.
pub const EVENTS: &[&[u8]] = &[
    br#"{"specversion":"1.0","id":"a1","source":"/shop","type":"order.placed"}"#,
    br#"{"specversion":"1.0","id":"a1","source":"/shop","type":"order.placed","subject":"c-7","time":"2026-01-31T12:00:00.123456789+01:30","datacontenttype":"application/json","dataschema":"http://x/y","tenant":"blue","size":3,"hot":true,"data":{"total":12.50,"lines":[{"n":1,"text":"\u00fc\ud83d\ude00\n"},null,false,-1e-3]}}"#,
    br#" { "specversion" : "1.0" , "id":"\u0031", "source":"s","type":"t","data_base64":"AP8BAg==","datacontenttype":"application/octet-stream"}"#,
    br#"{"specversion":"1.0","id":"a","source":"s","type":"t","datacontenttype":"text/plain","data":"two\nlines"}"#,
    br#"{"specversion":"1.0","id":"a","source":"s","type":"t","data":{"a/b":{"m~n":[0,1,2,{"":"x"}]},"id":"inner"}}"#,
    "{\"specversion\":\"1.0\",\"id\":\"ü\u{2028}\",\"source\":\"s\",\"type\":\"t\",\"data\":\"\u{2029}\r\"}"
        .as_bytes(),
];

/// Pieces of JSON, and of events.
pub const JSON: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u0000", "\\ud800", "\\udc00", "\\\"", "\\n", "\n",
    "\r", "\t", " ", "null", "true", "false", "0", "-0", "1e999", "-1e-999", "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "1.0", "NaN", "\u{feff}", "\u{2028}", "\u{0}",
    "{\"a\":", "[[", "\"\"", "\"id\":", "\"data\":", ",\"data\":null", ",\"data_base64\":\"AA==\"",
    ",\"datacontenttype\":\"application/json\"", ",\"datacontenttype\":\"text/plain\"",
    ",\"datacontenttype\":\"application/cloudevents+json\"", ",\"time\":\"2026-02-31T23:59:60Z\"",
    ",\"subject\":\"\"", ",\"subject\":null", ",\"x\":1.5", ",\"Tenant\":\"x\"", ",\"tenant\":\"y\"",
    ",\"specversion\":\"1.0\"", ",\"id\":\"b\"", "\u{fc}", "\u{1f600}",
];
