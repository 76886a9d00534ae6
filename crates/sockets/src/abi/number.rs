//! Linux's numbers for families, levels, options, flags and types.

macro_rules! numbers {
    ($(#[$about:meta])* $module:ident: $kind:ty { $($(#[$of:meta])* $name:ident = $value:expr;)* }) => {
        $(#[$about])*
        #[allow(missing_docs, reason = "the names are those of linux/sctp.h and RFC 6458")]
        pub mod $module {
            $($(#[$of])* pub const $name: $kind = $value;)*
        }
    };
}

numbers! {
    /// The arguments of `socket`: address families, socket types and the protocol.
    socket: i32 {
        AF_UNSPEC = 0;
        AF_UNIX = 1;
        AF_INET = 2;
        AF_INET6 = 10;
        SOCK_STREAM = 1;
        SOCK_DGRAM = 2;
        SOCK_SEQPACKET = 5;
        IPPROTO_SCTP = 132;
        IP_PMTUDISC_WANT = 1;
    }
}

numbers! {
    /// Levels of options and control messages.
    level: i32 {
        SOL_IP = 0;
        SOL_SOCKET = 1;
        SOL_TCP = 6;
        SOL_IPV6 = 41;
        SOL_SCTP = 132;
    }
}

numbers! {
    /// Options of the level `SOL_SOCKET` that are supported here.
    so: i32 {
        SO_DEBUG = 1;
        SO_REUSEADDR = 2;
        SO_TYPE = 3;
        SO_ERROR = 4;
        SO_DONTROUTE = 5;
        SO_BROADCAST = 6;
        SO_SNDBUF = 7;
        SO_RCVBUF = 8;
        SO_KEEPALIVE = 9;
        SO_OOBINLINE = 10;
        SO_NO_CHECK = 11;
        SO_PRIORITY = 12;
        SO_LINGER = 13;
        SO_BSDCOMPAT = 14;
        SO_REUSEPORT = 15;
        SO_PASSCRED = 16;
        SO_RCVLOWAT = 18;
        SO_SNDLOWAT = 19;
        SO_RCVTIMEO = 20;
        SO_SNDTIMEO = 21;
        SO_BINDTODEVICE = 25;
        SO_TIMESTAMP = 29;
        SO_ACCEPTCONN = 30;
        SO_SNDBUFFORCE = 32;
        SO_RCVBUFFORCE = 33;
        SO_TIMESTAMPNS = 35;
        SO_MARK = 36;
        SO_TIMESTAMPING = 37;
        SO_PROTOCOL = 38;
        SO_DOMAIN = 39;
        SO_RXQ_OVFL = 40;
        SO_LOCK_FILTER = 44;
        SO_SELECT_ERR_QUEUE = 45;
        SO_BUSY_POLL = 46;
        SO_MAX_PACING_RATE = 47;
        SO_INCOMING_CPU = 49;
        SO_ZEROCOPY = 60;
        SO_BINDTOIFINDEX = 62;
    }
}

numbers! {
    /// Options of the level `SOL_IP` that are supported here, or known to be refused.
    ip: i32 {
        IP_TOS = 1;
        IP_TTL = 2;
        IP_OPTIONS = 4;
        IP_RECVOPTS = 6;
        IP_RETOPTS = 7;
        IP_PKTINFO = 8;
        IP_MTU_DISCOVER = 10;
        IP_RECVERR = 11;
        IP_RECVTTL = 12;
        IP_RECVTOS = 13;
        IP_FREEBIND = 15;
        IP_TRANSPARENT = 19;
        IP_RECVORIGDSTADDR = 20;
        IP_MINTTL = 21;
        IP_BIND_ADDRESS_NO_PORT = 24;
        IP_MULTICAST_IF = 32;
        IP_MULTICAST_TTL = 33;
        IP_MULTICAST_LOOP = 34;
        IP_MULTICAST_ALL = 49;
        IP_UNICAST_IF = 50;
    }
}

numbers! {
    /// The same for the level `SOL_IPV6`.
    ipv6: i32 {
        IPV6_UNICAST_HOPS = 16;
        IPV6_MULTICAST_LOOP = 19;
        IPV6_MTU_DISCOVER = 23;
        IPV6_RECVERR = 25;
        IPV6_V6ONLY = 26;
        IPV6_FLOWINFO_SEND = 33;
        IPV6_RECVPKTINFO = 49;
        IPV6_RECVHOPLIMIT = 51;
        IPV6_DONTFRAG = 62;
        IPV6_RECVTCLASS = 66;
        IPV6_TCLASS = 67;
        IPV6_AUTOFLOWLABEL = 70;
        IPV6_MINHOPCOUNT = 73;
        IPV6_TRANSPARENT = 75;
        IPV6_UNICAST_IF = 76;
        IPV6_FREEBIND = 78;
    }
}

numbers! {
    /// Options of the level `SOL_SCTP`.
    option: i32 {
        SCTP_RTOINFO = 0;
        SCTP_ASSOCINFO = 1;
        SCTP_INITMSG = 2;
        SCTP_NODELAY = 3;
        SCTP_AUTOCLOSE = 4;
        SCTP_SET_PEER_PRIMARY_ADDR = 5;
        SCTP_PRIMARY_ADDR = 6;
        SCTP_ADAPTATION_LAYER = 7;
        SCTP_DISABLE_FRAGMENTS = 8;
        SCTP_PEER_ADDR_PARAMS = 9;
        SCTP_DEFAULT_SEND_PARAM = 10;
        SCTP_EVENTS = 11;
        SCTP_I_WANT_MAPPED_V4_ADDR = 12;
        SCTP_MAXSEG = 13;
        SCTP_STATUS = 14;
        SCTP_GET_PEER_ADDR_INFO = 15;
        SCTP_DELAYED_SACK = 16;
        SCTP_CONTEXT = 17;
        SCTP_FRAGMENT_INTERLEAVE = 18;
        SCTP_PARTIAL_DELIVERY_POINT = 19;
        SCTP_MAX_BURST = 20;
        SCTP_AUTH_CHUNK = 21;
        SCTP_HMAC_IDENT = 22;
        SCTP_AUTH_KEY = 23;
        SCTP_AUTH_ACTIVE_KEY = 24;
        SCTP_AUTH_DELETE_KEY = 25;
        SCTP_PEER_AUTH_CHUNKS = 26;
        SCTP_LOCAL_AUTH_CHUNKS = 27;
        SCTP_GET_ASSOC_NUMBER = 28;
        SCTP_GET_ASSOC_ID_LIST = 29;
        SCTP_AUTO_ASCONF = 30;
        SCTP_PEER_ADDR_THLDS = 31;
        SCTP_RECVRCVINFO = 32;
        SCTP_RECVNXTINFO = 33;
        SCTP_DEFAULT_SNDINFO = 34;
        SCTP_AUTH_DEACTIVATE_KEY = 35;
        SCTP_REUSE_PORT = 36;
        SCTP_PEER_ADDR_THLDS_V2 = 37;
        SCTP_SOCKOPT_BINDX_ADD = 100;
        SCTP_SOCKOPT_BINDX_REM = 101;
        SCTP_SOCKOPT_PEELOFF = 102;
        SCTP_SOCKOPT_CONNECTX_OLD = 107;
        SCTP_GET_PEER_ADDRS = 108;
        SCTP_GET_LOCAL_ADDRS = 109;
        SCTP_SOCKOPT_CONNECTX = 110;
        SCTP_SOCKOPT_CONNECTX3 = 111;
        SCTP_GET_ASSOC_STATS = 112;
        SCTP_PR_SUPPORTED = 113;
        SCTP_DEFAULT_PRINFO = 114;
        SCTP_PR_ASSOC_STATUS = 115;
        SCTP_PR_STREAM_STATUS = 116;
        SCTP_RECONFIG_SUPPORTED = 117;
        SCTP_ENABLE_STREAM_RESET = 118;
        SCTP_RESET_STREAMS = 119;
        SCTP_RESET_ASSOC = 120;
        SCTP_ADD_STREAMS = 121;
        SCTP_SOCKOPT_PEELOFF_FLAGS = 122;
        SCTP_STREAM_SCHEDULER = 123;
        SCTP_STREAM_SCHEDULER_VALUE = 124;
        SCTP_INTERLEAVING_SUPPORTED = 125;
        SCTP_SENDMSG_CONNECT = 126;
        SCTP_EVENT = 127;
        SCTP_ASCONF_SUPPORTED = 128;
        SCTP_AUTH_SUPPORTED = 129;
        SCTP_ECN_SUPPORTED = 130;
        SCTP_EXPOSE_POTENTIALLY_FAILED_STATE = 131;
        SCTP_REMOTE_UDP_ENCAPS_PORT = 132;
        SCTP_PLPMTUD_PROBE_INTERVAL = 133;
        /// draft-dreibholz-tsvwg-sctpsocket-sqinfo §3, which assigns no number: this one is far from
        /// those of Linux.
        SCTP_SQINFO = 1000;
    }
}

numbers! {
    /// Flags of `send` and `receive`.
    msg: i32 {
        MSG_OOB = 1;
        MSG_PEEK = 2;
        MSG_CTRUNC = 8;
        MSG_TRUNC = 0x20;
        MSG_DONTWAIT = 0x40;
        MSG_EOR = 0x80;
        MSG_WAITALL = 0x100;
        MSG_NOSIGNAL = 0x4000;
        MSG_NOTIFICATION = 0x8000;
    }
}

numbers! {
    /// The events of `poll`.
    poll: u16 {
        POLLIN = 0x001;
        POLLOUT = 0x004;
        POLLERR = 0x008;
        POLLHUP = 0x010;
        POLLRDHUP = 0x2000;
    }
}

numbers! {
    /// The second argument of `shutdown`.
    how: i32 {
        SHUT_RD = 0;
        SHUT_WR = 1;
        SHUT_RDWR = 2;
    }
}

numbers! {
    /// Flags in `sndrcvinfo`, `sndinfo` and `rcvinfo`.
    flag: u16 {
        SCTP_UNORDERED = 1;
        SCTP_ADDR_OVER = 2;
        SCTP_ABORT = 4;
        SCTP_SACK_IMMEDIATELY = 8;
        SCTP_PR_SCTP_TTL = 0x10;
        SCTP_PR_SCTP_RTX = 0x20;
        SCTP_PR_SCTP_PRIO = 0x30;
        SCTP_PR_SCTP_MASK = 0x30;
        SCTP_SENDALL = 0x40;
        SCTP_PR_SCTP_ALL = 0x80;
        SCTP_EOF = 0x200;
    }
}

numbers! {
    /// Types of control messages at the level `SOL_SCTP`.
    cmsg: i32 {
        SCTP_INIT = 0;
        SCTP_SNDRCV = 1;
        SCTP_SNDINFO = 2;
        SCTP_RCVINFO = 3;
        SCTP_NXTINFO = 4;
        SCTP_PRINFO = 5;
        SCTP_AUTHINFO = 6;
        SCTP_DSTADDRV4 = 7;
        SCTP_DSTADDRV6 = 8;
    }
}

numbers! {
    /// Types of notifications. The low byte is their index in `SCTP_EVENTS`.
    event: u16 {
        SCTP_DATA_IO_EVENT = 0x8000;
        SCTP_ASSOC_CHANGE = 0x8001;
        SCTP_PEER_ADDR_CHANGE = 0x8002;
        SCTP_SEND_FAILED = 0x8003;
        SCTP_REMOTE_ERROR = 0x8004;
        SCTP_SHUTDOWN_EVENT = 0x8005;
        SCTP_PARTIAL_DELIVERY_EVENT = 0x8006;
        SCTP_ADAPTATION_INDICATION = 0x8007;
        SCTP_AUTHENTICATION_EVENT = 0x8008;
        SCTP_SENDER_DRY_EVENT = 0x8009;
        SCTP_STREAM_RESET_EVENT = 0x800a;
        SCTP_ASSOC_RESET_EVENT = 0x800b;
        SCTP_STREAM_CHANGE_EVENT = 0x800c;
        SCTP_SEND_FAILED_EVENT = 0x800d;
    }
}

numbers! {
    /// Reserved association identifiers.
    association: i32 {
        SCTP_FUTURE_ASSOC = 0;
        SCTP_CURRENT_ASSOC = 1;
        SCTP_ALL_ASSOC = 2;
    }
}
