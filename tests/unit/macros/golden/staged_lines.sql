create or replace temporary view openmirroring_staged (c0 string, c1 string) using csv options (
    'path' 'file:/lake/it\'s \\[odd\\]/rows',
    'header' 'true',
    'multiLine' 'true',
    'sep' ',',
    'lineSep' '\r\n',
    'quote' '"',
    'escape' '\\',
    'encoding' 'UTF-8'
  )
