use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

use socket2::SockRef;

use super::*;
use crate::icmp::{disable_reports, enable_reports, is_icmp_report};

fn error(origin: u8, errno: i32, kind: u8, code: u8, info: u32) -> libc::sock_extended_err {
    libc::sock_extended_err {
        ee_errno: u32::try_from(errno).unwrap(),
        ee_origin: origin,
        ee_type: kind,
        ee_code: code,
        ee_pad: 0,
        ee_info: info,
        ee_data: 0,
    }
}

#[test]
fn reports_are_classified_as_in_the_rfcs() {
    let (v4, v6) = (libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6);
    let cases = [
        (error(v4, libc::ENETUNREACH, 3, 0, 0), Some(IcmpCause::NoRoute)),
        (error(v4, libc::EHOSTUNREACH, 3, 1, 0), Some(IcmpCause::AddressUnreachable)),
        (error(v4, libc::ENOPROTOOPT, 3, 2, 0), Some(IcmpCause::ProtocolUnreachable)),
        (error(v4, libc::ECONNREFUSED, 3, 3, 0), Some(IcmpCause::PortUnreachable)),
        (error(v4, libc::EMSGSIZE, 3, 4, 1400), Some(IcmpCause::TooBig(1400))),
        (error(v4, libc::EMSGSIZE, 3, 4, 0), None),
        (error(v4, libc::EHOSTUNREACH, 3, 13, 0), Some(IcmpCause::Prohibited)),
        (error(v6, libc::ENETUNREACH, 1, 0, 0), Some(IcmpCause::NoRoute)),
        (error(v6, libc::EACCES, 1, 1, 0), Some(IcmpCause::Prohibited)),
        (error(v6, libc::EHOSTUNREACH, 1, 3, 0), Some(IcmpCause::AddressUnreachable)),
        (error(v6, libc::ECONNREFUSED, 1, 4, 0), Some(IcmpCause::PortUnreachable)),
        (error(v6, libc::EPROTO, 4, 1, 0), Some(IcmpCause::ProtocolUnreachable)),
        (error(v6, libc::EHOSTUNREACH, 3, 0, 0), None),
        (error(libc::SO_EE_ORIGIN_LOCAL, libc::ENETUNREACH, 0, 0, 0), Some(IcmpCause::NoRoute)),
    ];
    for (input, expected) in cases {
        assert_eq!(cause_of(&input), expected, "{input:?}");
    }
}

#[test]
fn a_report_has_cause_sender_and_quoted_packet() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        enable_reports(&SockRef::from(&socket), Domain::for_address((ip, 0).into())).unwrap();
        // The discard port of this host, where nothing is listening.
        let unused = SocketAddr::new(ip, 9);
        socket.send_to(b"hello", unused).unwrap();
        assert!(is_icmp_report(&socket.recv(&mut [0; 1]).unwrap_err()));
        socket.set_nonblocking(true).unwrap();
        let report = read(&SockRef::from(&socket)).unwrap().unwrap();
        let quoted = Some(Bytes::from_static(b"hello"));
        let expected = IcmpReport {
            remote: unused,
            cause: IcmpCause::PortUnreachable,
            sender: Some(ip),
            quoted,
        };
        assert_eq!(report, expected);
        assert_eq!(
            report.to_string(),
            format!("nothing is listening on this port (ICMP from {ip})")
        );
        disable_reports(&SockRef::from(&socket), Domain::for_address((ip, 0).into())).unwrap();
        assert_eq!(read(&SockRef::from(&socket)).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
