#![allow(warnings)]
#[path = "../../tests/multipath/world.rs"]
mod world;
use eyas_sctp::config::*;
use eyas_sctp::identifier::StreamId;
use std::time::Duration;
use world::*;

fn fixed(streams: usize) -> StreamMapping {
    if streams == 7 {
        let path = |s: u16| {
            if s == 0 {
                2
            } else if s % 2 == 1 {
                0
            } else {
                1
            }
        };
        StreamMapping::Table((0..7).map(|s| (StreamId(s), path(s))).collect())
    } else {
        StreamMapping::Table((0..2).map(|s| (StreamId(s), s as usize)).collect())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // scratch <scenario> <mapping> <user> <nr> <seconds> <sigma KiB...>
    let scenario = args[1].as_str();
    let (links, streams) = match scenario {
        "three" => (vec![link(10, 10), link(10, 10), link(1, 50)], 7),
        other => {
            let v: Vec<Link> = other
                .split('+')
                .map(|p| {
                    let (r, d) = p.split_once('/').unwrap();
                    let (d, l) = d.split_once('%').unwrap_or((d, "0"));
                    let mut k = link(r.parse().unwrap(), d.parse().unwrap());
                    k.loss = l.parse().unwrap();
                    k
                })
                .collect();
            (v, 2)
        }
    };
    let streams = std::env::var("STREAMS").map_or(streams, |s| s.parse().unwrap());
    let user = if args[3] == "api" { User::ByQueueInfo } else { User::InTurn };
    let nr = args[4] == "nr";
    let seconds: u64 = args[5].parse().unwrap();
    for sigma in &args[6..] {
        let sigma: usize = sigma.parse().unwrap();
        let mut config = AssociationConfig::default();
        let mapping = match args[2].as_str() {
            "rr" => StreamMapping::RoundRobin,
            "fixed" => fixed(streams),
            "auto" => StreamMapping::Automatic,
            "mod" => StreamMapping::Modulo,
            _ => panic!(),
        };
        let var = |k: &str| std::env::var(k).unwrap_or_default();
        if var("PROFILE") == "single" {
        } else if var("PROFILE") == "ours" {
            config.multipath = Some(Multipath::default());
            config.path_mtu_discovery = false;
            config.extensions.interleaving = false;
            config.extensions.nr_sack = true;
            config.scheduler = SchedulerKind::RoundRobin;
        } else {
            Profile::Pfldnet2010.apply(&mut config);
        }
        if let Some(mp) = config.multipath.as_mut() {
            mp.mapping = mapping;
            if let Ok(cap) = std::env::var("CAP") {
                mp.flight_cap = if cap == "none" {
                    None
                } else {
                    let mut c = FlightCap::default();
                    c.percent = cap.parse().unwrap();
                    Some(c)
                };
            }
            match var("SACK").as_str() {
                "low" => mp.sack_path = SackPath::LowestRtt,
                "turn" => mp.sack_path = SackPath::InTurn,
                "last" => mp.sack_path = SackPath::LastArrival,
                "first" => mp.sack_path = SackPath::First,
                _ => {}
            }
            match var("SPLIT").as_str() {
                "none" => {
                    mp.sender_splitting = BufferSplitting::None;
                    mp.receiver_splitting = BufferSplitting::None;
                }
                "osb" => {
                    mp.sender_splitting = BufferSplitting::Outstanding;
                    mp.receiver_splitting = BufferSplitting::Outstanding;
                }
                "queued" => {
                    mp.sender_splitting = BufferSplitting::Queued;
                    mp.receiver_splitting = BufferSplitting::Queued;
                }
                _ => {}
            }
            match var("ORDER").as_str() {
                "rtt" => mp.path_order = PathOrder::LowestRtt,
                "old" => mp.path_order = PathOrder::OldestTransmission,
                _ => {}
            }
            match var("RESCHED").as_str() {
                "both" => mp.rescheduling = ChunkRescheduling::Both,
                "none" => mp.rescheduling = ChunkRescheduling::None,
                _ => {}
            }
        }
        match var("CC").as_str() {
            "reno" => config.congestion_control = CongestionControlKind::NewReno,
            "bbr" => config.congestion_control = CongestionControlKind::Bbr,
            "cubic" => config.congestion_control = CongestionControlKind::Cubic,
            _ => {}
        }
        if args[4] == "nonr" {
            config.extensions.nr_sack = false;
        }
        config.send_buffer = sigma * 1024;
        config.receive_buffer = sigma * 1024;
        config.outbound_streams = streams as u16;
        let seed: u8 = std::env::var("SEED").map_or(3, |x| x.parse().unwrap());
        let mut w = World::new(&config, &links, streams, seed, User::Silent);
        if std::env::var("LATE").is_ok() {
            w.run_until(Duration::from_millis(900 + u64::from(seed) * 8));
        }
        w.user = user;
        w.run_until(Duration::from_secs(19));
        w.start_measuring();
        let dbg = var("DEBUG");
        if !dbg.is_empty() {
            for k in 0..50 {
                w.run_until(Duration::from_millis(19000 + k * dbg.parse::<u64>().unwrap()));
                let s = w.status();
                for p in &s.paths {
                    print!(
                        " [cwnd {} out {} srtt {:?} {:?}]",
                        p.congestion_window, p.outstanding, p.smoothed_rtt, p.state
                    );
                }
                println!(" queued {} pw {}", s.queued, s.peer_window);
            }
        }
        w.run_until(Duration::from_secs(19 + seconds));
        let t = Duration::from_secs(seconds);
        let rates: Vec<String> = w
            .tallies
            .iter()
            .map(|x| {
                format!(
                    "{:.2}@{:.0}ms",
                    x.messages as f64 * 1452.0 * 8.0 / seconds as f64 / 1e6,
                    x.mean_delay()
                )
            })
            .collect();
        let mean: f64 = w.tallies.iter().map(|x| x.mean_delay()).sum::<f64>() / streams as f64;
        println!(
            "{scenario} {} {} {} {sigma} KiB: {:.2} Mbit/s mean {:.0} ms  {}  rtx {}",
            args[2],
            args[3],
            args[4],
            w.throughput(t),
            mean,
            rates.join(" "),
            w.hosts[0].counters().retransmissions
        );
    }
}
