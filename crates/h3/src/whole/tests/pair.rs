//! Two ends that talk: what one sends arrives at the other, however the transport cuts and reorders.
