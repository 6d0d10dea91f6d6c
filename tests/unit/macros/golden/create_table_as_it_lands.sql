create table `shop`.`orders__next`
  options ('compression' 'zstd')
  tblproperties (
    'openmirroring.batch_id' = '20261121204415ef7e865d',
    'it\'s' = 'a \'quote\' and a \\',
    'n' = '1'
  )
  as
  select 1 as `id`, 'a' as `status`
