select `id`, `it's ``odd``` from `shop`.`orders` as DBT_INTERNAL_DEST
  union all
  select `id`, `it's ``odd``` from `shop`.`orders__next`
