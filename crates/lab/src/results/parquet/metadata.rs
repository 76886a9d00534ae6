//! The headers of pages, and the footer; the numbers are those of `parquet.thrift` of the format.

use super::super::ResultsTable;
use super::thrift::ThriftStruct;

/// Physical types.
const INT64: usize = 2;
const DOUBLE: usize = 5;
const BYTE_ARRAY: usize = 6;
/// Whether values can be missing.
const REQUIRED: usize = 0;
const OPTIONAL: usize = 1;
/// The interpretation of physical types, in the old and the new notation.
const UTF8: usize = 0;
const UINT_64: usize = 14;
const STRING: u8 = 1;
const INTEGER: u8 = 10;
/// Encodings.
const PLAIN: usize = 0;
const RLE: usize = 3;
const RLE_DICTIONARY: usize = 8;
/// Page types.
const DATA_PAGE: usize = 0;
const DICTIONARY_PAGE: usize = 2;
const UNCOMPRESSED: usize = 0;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ColumnKind {
    Text,
    Whole,
    Double,
    MaybeDouble,
}

/// The types of the columns, in the order of [`ResultsTable::COLUMNS`].
const KINDS: [ColumnKind; ResultsTable::COLUMNS.len()] = [
    ColumnKind::Text,
    ColumnKind::Text,
    ColumnKind::Text,
    ColumnKind::Double,
    ColumnKind::Whole,
    ColumnKind::Text,
    ColumnKind::Text,
    ColumnKind::MaybeDouble,
];

impl ColumnKind {
    const fn physical(self) -> usize {
        match self {
            Self::Text => BYTE_ARRAY,
            Self::Whole => INT64,
            Self::Double | Self::MaybeDouble => DOUBLE,
        }
    }

    const fn encoding(self) -> usize {
        match self {
            Self::Text => RLE_DICTIONARY,
            _ => PLAIN,
        }
    }

    fn schema(self, name: &str) -> ThriftStruct {
        let repetition = if self == Self::MaybeDouble { OPTIONAL } else { REQUIRED };
        let element =
            ThriftStruct::default().int(1, self.physical()).int(3, repetition).text(4, name);
        let empty = ThriftStruct::default;
        match self {
            Self::Text => element.int(6, UTF8).inner(10, empty().inner(STRING, empty())),
            Self::Whole => {
                let unsigned = empty().byte(1, 64).no(2);
                element.int(6, UINT_64).inner(10, empty().inner(INTEGER, unsigned))
            }
            Self::Double | Self::MaybeDouble => element,
        }
    }
}

/// A row group.
pub(super) struct RowGroup {
    pub(super) rows: usize,
    pub(super) columns: Vec<ColumnChunk>,
}

/// The position of a group's column in the file.
pub(super) struct ColumnChunk {
    pub(super) rows: usize,
    pub(super) dictionary: Option<usize>,
    pub(super) data: usize,
    pub(super) end: usize,
}

impl ColumnChunk {
    fn start(&self) -> usize {
        self.dictionary.unwrap_or(self.data)
    }

    fn size(&self) -> usize {
        self.end - self.start()
    }

    fn described(&self, kind: ColumnKind, name: &str) -> ThriftStruct {
        let encodings: &[usize] = match kind {
            ColumnKind::Text => &[PLAIN, RLE, RLE_DICTIONARY],
            _ => &[PLAIN, RLE],
        };
        let column = ThriftStruct::default()
            .int(1, kind.physical())
            .ints(2, encodings)
            .texts(3, &[name])
            .int(4, UNCOMPRESSED)
            .long(5, self.rows)
            .long(6, self.size())
            .long(7, self.size())
            .long(9, self.data);
        let column = match self.dictionary {
            Some(place) => column.long(11, place),
            None => column,
        };
        ThriftStruct::default().long(2, self.start()).inner(3, column)
    }
}

/// Writes the header of a page of values.
pub(super) fn page_header(bytes: usize, rows: usize, kind: ColumnKind, file: &mut Vec<u8>) {
    let data = ThriftStruct::default().int(1, rows).int(2, kind.encoding()).int(3, RLE).int(4, RLE);
    let header =
        ThriftStruct::default().int(1, DATA_PAGE).int(2, bytes).int(3, bytes).inner(5, data);
    file.extend(header.end());
}

/// Writes the header of a page with the strings of a column.
pub(super) fn dictionary_header(bytes: usize, texts: usize, file: &mut Vec<u8>) {
    let dictionary = ThriftStruct::default().int(1, texts).int(2, PLAIN);
    let header = ThriftStruct::default()
        .int(1, DICTIONARY_PAGE)
        .int(2, bytes)
        .int(3, bytes)
        .inner(7, dictionary);
    file.extend(header.end());
}

/// Returns the footer of the file.
pub(super) fn footer(rows: usize, groups: &[RowGroup]) -> Vec<u8> {
    let root = ThriftStruct::default().text(4, "runs").int(5, KINDS.len());
    let columns = KINDS.iter().zip(ResultsTable::COLUMNS).map(|(kind, name)| kind.schema(name));
    let group = |group: &RowGroup| {
        let described = group.columns.iter().zip(KINDS.iter().zip(ResultsTable::COLUMNS));
        let columns = described.map(|(chunk, (kind, name))| chunk.described(*kind, name)).collect();
        let size = group.columns.iter().map(ColumnChunk::size).sum();
        ThriftStruct::default().structs(1, columns).long(2, size).long(3, group.rows)
    };
    ThriftStruct::default()
        .int(1, 1)
        .structs(2, std::iter::once(root).chain(columns).collect())
        .long(3, rows)
        .structs(4, groups.iter().map(group).collect())
        .text(6, concat!("eyas version ", env!("CARGO_PKG_VERSION")))
        .end()
}
