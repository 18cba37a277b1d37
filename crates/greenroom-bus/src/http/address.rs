//! Which addresses anybody on the internet may reach, and which are of this machine, its network
//! or its provider.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// The addresses that share this many first bits with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddressRange {
    first: IpAddr,
    bits: u32,
}

/// What is not public, by the registries of special addresses of IANA (RFC 6890), of version 4.
const PRIVATE_V4: [AddressRange; 14] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// The one range of version 6 that is given out, and what of it is not public. Everything else is
/// of this machine or of a network.
const GIVEN_OUT_V6: AddressRange = v6(0x2000, 0, 3);
const PRIVATE_V6: [AddressRange; 3] = [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x3fff, 0, 20)];

/// Addresses of version 6 that hold one of version 4: those of NAT64 (RFC 6052), and of 6to4
/// (RFC 3056).
const NAT64: AddressRange = v6(0x64, 0xff9b, 96);
const SIX_TO_FOUR: AddressRange = v6(0x2002, 0, 16);

const fn v4([a, b, c, d]: [u8; 4], bits: u32) -> AddressRange {
    AddressRange { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

const fn v6(first: u16, second: u16, bits: u32) -> AddressRange {
    AddressRange { first: IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0)), bits }
}

impl AddressRange {
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let differ = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                u128::from(first.to_bits() ^ address.to_bits()) << 96
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => first.to_bits() ^ address.to_bits(),
            _ => return false,
        };
        differ.leading_zeros() >= self.bits
    }
}

/// `10.0.0.0/8`, `fd00::/8`, or one address.
impl FromStr for AddressRange {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let first: IpAddr = first.parse().map_err(|_| ())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| ()))?;
        if bits > most { Err(()) } else { Ok(Self { first, bits }) }
    }
}

/// The address that packets to this one end at: some of version 6 hold one of version 4.
pub(super) fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(long) = address.to_canonical() else { return address.to_canonical() };
    let bits = long.to_bits();
    if NAT64.contains(address) {
        IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
    } else if SIX_TO_FOUR.contains(address) {
        IpAddr::V4(Ipv4Addr::from_bits((bits >> 80) as u32))
    } else {
        address
    }
}

/// Whether anybody on the internet may reach it; it is [`meant`].
pub(super) fn is_public(address: IpAddr) -> bool {
    let is_in = |ranges: &[AddressRange]| ranges.iter().any(|range| range.contains(address));
    match address {
        IpAddr::V4(_) => !is_in(&PRIVATE_V4),
        IpAddr::V6(_) => GIVEN_OUT_V6.contains(address) && !is_in(&PRIVATE_V6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q12_addresses_that_are_not_public_are_known_in_every_form() {
        let private = [
            "0.0.0.0",
            "10.255.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in private {
            assert!(!is_public(meant(text.parse().unwrap())), "{text}");
        }
        let public = [
            "8.8.8.8",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.3.1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2606:4700::1111",
            "2a00:1450::1",
        ];
        for text in public {
            assert!(is_public(meant(text.parse().unwrap())), "{text}");
        }
    }
}
