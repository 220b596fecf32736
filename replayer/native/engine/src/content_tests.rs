use super::*;
use std::convert::Infallible;

/// FNV-1a, 64 bits.
fn digest(digest: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(digest, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

fn data(pool_bytes: u64, place: (u32, u32, u32), size: u64, content: Content) -> u64 {
    let pool = Pool::new(7, pool_bytes);
    let mut sum = EMPTY;
    let mut len = 0;
    let done = FileData::new(place, size, content).each_chunk(&pool, &mut Vec::new(), |chunk| {
        sum = digest(sum, chunk);
        len += chunk.len() as u64;
        Ok::<_, Infallible>(())
    });
    assert!(done.is_ok());
    assert_eq!(len, size);
    sum
}

// The golden values are those of the reference engine (tests/oracle/content.py).

#[test]
fn pools_are_the_golden_ones() {
    for (seed, wanted) in [
        (0, 0x88dc_6b7d_2b0b_082a),
        (1, 0x18dc_7fe3_101f_a158),
        (u64::MAX, 0x1adc_5148_eabf_1575),
    ] {
        assert_eq!(digest(EMPTY, &Pool::new(seed, 1 << 16).bytes), wanted);
    }
}

/// One digest each of four files: 5 bytes, 100,000 of two users, 4097.
fn check(pool_bytes: u64, content: Content, wanted: [u64; 4]) {
    let places = [
        ((0, 0, 0), 5),
        ((1, 1, 0), 100_000),
        ((1, 1, 3), 100_000),
        ((0, 2, 1), 4097),
    ];
    let found = places.map(|(place, size)| data(pool_bytes, place, size, content));
    assert_eq!(
        found.map(|digest| format!("{digest:x}")),
        wanted.map(|digest| format!("{digest:x}"))
    );
}

#[test]
fn random_files_hold_the_golden_bytes() {
    check(
        8192,
        Content::Random,
        [
            0x4fa9_5109_71bf_f65c,
            0x7ff8_90d2_aa9d_572f,
            0x2fba_d5d8_f963_bf38,
            0x6406_4df9_cfba_840d,
        ],
    );
    check(
        65536,
        Content::Random,
        [
            0xb54e_898b_0413_ec0f,
            0xba24_73e5_3e1c_8d47,
            0xbdc9_554a_4058_0f74,
            0xfb81_814b_ce6f_86bf,
        ],
    );
}

#[test]
fn files_of_zeros_hold_zeros() {
    check(
        8192,
        Content::Zeros,
        [
            0xe4bc_4fd9_252b_e94f,
            0x61b9_4018_df3e_37a5,
            0x61b9_4018_df3e_37a5,
            0xf906_68f7_6ee9_77df,
        ],
    );
}

#[test]
fn compressible_files_hold_the_golden_bytes() {
    check(
        8192,
        Content::Compressible(50),
        [
            0xe4bc_4fd9_252b_e94f,
            0x45bb_0c28_3147_da4d,
            0x3c50_2dc7_d1de_40d5,
            0x7d37_9201_d3e6_3559,
        ],
    );
    check(
        65536,
        Content::Compressible(50),
        [
            0xe4bc_4fd9_252b_e94f,
            0x365e_4e5e_6122_9e29,
            0xa073_0fda_1a2f_46c3,
            0xd08e_0c53_6039_9289,
        ],
    );
    check(
        8192,
        Content::Compressible(33),
        [
            0xe4bc_4fd9_252b_e94f,
            0x760d_bacb_0149_3983,
            0x4b3d_5372_1acf_8244,
            0xd38e_f83d_2a14_9d94,
        ],
    );
    check(
        65536,
        Content::Compressible(33),
        [
            0xe4bc_4fd9_252b_e94f,
            0x47a3_afcc_1532_4e5b,
            0x5fd2_7019_4a72_e179,
            0xacce_cba6_5a02_dc5c,
        ],
    );
}

#[test]
fn long_files_are_made_of_chunks() {
    let found = data(
        (1 << 21) + 4096,
        (0, 0, 0),
        (2 << 20) + 123_457,
        Content::Random,
    );
    assert_eq!(found, 0xe36c_1945_47e4_da9c);
}
