//! A header of a sample request, from the command line.

use std::str::FromStr;

/// `Name: value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let how = "write 'Name: value', such as 'X-Event: paid'";
        let (name, value) = text.split_once(':').ok_or(how)?;
        let is_token =
            |byte: u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("{name:?} is not the name of a header; {how}"));
        }
        Ok(Self { name: name.to_owned(), value: value.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c20_a_header_is_a_name_a_colon_and_a_value() {
        let header: Header = "X-Event:  paid: twice ".parse().unwrap();
        assert_eq!((&*header.name, &*header.value), ("X-Event", "paid: twice"));
        for wrong in ["X-Event", ": paid", "X Event: paid", "X(Event): paid"] {
            assert!(
                wrong.parse::<Header>().unwrap_err().contains("write 'Name: value'"),
                "{wrong}"
            );
        }
    }
}
