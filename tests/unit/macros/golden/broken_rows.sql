select `id`, `it's ``odd```, 1 from `shop`.`orders__next` where not (price > 0) order by `id`, `it's ``odd``` limit 5
